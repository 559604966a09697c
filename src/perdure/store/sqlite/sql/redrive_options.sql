-- Give a task that runs again the unique key and the gates that its other payload makes.
UPDATE perdure_tasks AS tasks SET options = :options WHERE n = :n
