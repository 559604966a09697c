-- Until when nothing is declared lost.
SELECT value FROM meta WHERE key = 'losses_suspended_until_us'
