-- How many rows the last writing statement changed.
SELECT changes()
