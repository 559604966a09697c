-- What claims go by in the documents of queues, organizations and kinds; and gates that give keys their turn in a lane.

DROP INDEX perdure_definitions_paused;
CREATE INDEX perdure_definitions_of_flow ON perdure_definitions (organization, type, name)
    WHERE type IN ('queue', 'organization', 'kind') AND (
        document ->> 'paused' = 'true' OR document ->> 'concurrency' IS NOT NULL OR document ->> 'rate' IS NOT NULL
        OR document ->> 'weight' IS NOT NULL
    );

ALTER TABLE perdure_gates
    DROP CONSTRAINT perdure_gates_sort_check,
    ADD CONSTRAINT perdure_gates_sort_check CHECK (sort IN ('order', 'fair', 'concurrency', 'rate')),
    ADD CHECK (sort <> 'fair' OR slots = 1);
