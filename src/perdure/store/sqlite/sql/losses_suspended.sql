-- Until when nothing is declared lost; an instant further ahead than any suspension reaches is on another scale of time.
SELECT iif(value > :now + :suspension_max, 0, value) FROM perdure_meta AS meta WHERE key = 'losses_suspended_until_us'
