-- Whether tasks may wait at a gate: whoever gives a slot back learns from the gate's row, which it locks, whether somebody is to have
-- it. It is set and cleared under that lock, and may be true where nobody waits any more.

ALTER TABLE perdure_gates ADD COLUMN waited boolean NOT NULL DEFAULT true;
