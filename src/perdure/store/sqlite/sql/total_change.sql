-- Change the totals.
UPDATE totals
SET count = count + (change.value ->> 1)
FROM json_each(:batch) AS change
WHERE totals.what = change.value ->> 0
