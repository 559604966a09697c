-- Remove the results of tasks that stay.
UPDATE perdure_ends AS ends SET result = NULL, result_encoding = NULL WHERE n IN (SELECT value FROM json_each(:batch))
