-- Remove the counters of lanes that go.
DELETE FROM perdure_counts AS counts WHERE lane IN (SELECT value FROM json_each(:batch))
