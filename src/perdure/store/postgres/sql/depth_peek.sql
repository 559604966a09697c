-- Whether anything has a depth at all.
SELECT EXISTS (
    SELECT 1 FROM perdure_definitions AS definitions
    WHERE type IN ('queue', 'organization') AND document ->> 'depth' IS NOT NULL
)
