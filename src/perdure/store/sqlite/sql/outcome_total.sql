-- All that was counted of a breaker since a change of it: attempts and failures.
SELECT coalesce(sum(attempts), 0), coalesce(sum(failures), 0)
FROM perdure_outcomes AS outcomes
WHERE organization = :organization AND kind = :kind AND since_us = :expected
