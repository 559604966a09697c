-- Who ordered a worker and when; what operators removed, found by when they did; since when lanes have been empty.

ALTER TABLE perdure_workers ADD COLUMN ordered_by TEXT;
ALTER TABLE perdure_workers ADD COLUMN ordered_us INTEGER;

-- Events of no task and no job: nothing else is left to tell them.
CREATE INDEX perdure_events_acts ON perdure_events (at_us) WHERE n IS NULL AND job IS NULL;

ALTER TABLE perdure_lanes ADD COLUMN idle_since_us INTEGER;
