-- A breaker, kept from others until the commit: what they counted before shows to later statements only.
SELECT 1
FROM perdure_breakers AS breakers
WHERE organization = %(organization)s::text AND kind = %(kind)s::text
FOR NO KEY UPDATE
