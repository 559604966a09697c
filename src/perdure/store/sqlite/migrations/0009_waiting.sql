-- What is waited for to pass is found by the absence of an attempt, which the table's checks tie to the state: an IN of
-- three states in the condition of an index makes a table for each row that is written, four times for each claim.

DROP INDEX perdure_live_ttl;
CREATE INDEX perdure_live_ttl ON perdure_live (expires_us) WHERE expires_us IS NOT NULL AND attempt_id IS NULL;
DROP INDEX perdure_live_deadline;
CREATE INDEX perdure_live_deadline ON perdure_live (deadline_us) WHERE deadline_us IS NOT NULL AND attempt_id IS NULL;
