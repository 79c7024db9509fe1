"""An Airflow DAG that audits each day when it is over, and catches up on past days. Copy it to the DAGs folder."""

import subprocess
from datetime import datetime, timedelta

from airflow import DAG
from airflow.exceptions import AirflowException, AirflowFailException
from airflow.providers.standard.operators.python import PythonOperator
from airflow.timetables.interval import CronDataIntervalTimetable

COMMAND = "python jobs/audit.py jobs/audit.yaml --json --date"
FOLDER = "/srv/excir"
TRY_AGAIN = 75


def audit(day: str, folder: str = FOLDER) -> str:
    """Returns the last line of the audit, which is JSON."""
    done = subprocess.run([*COMMAND.split(), day], cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode == TRY_AGAIN:
        raise AirflowException(done.stdout)
    if done.returncode != 0:  # a failed check, configuration or lake: a retry would end in the same way
        raise AirflowFailException(done.stdout)
    return done.stdout


with DAG(
    "excir_audit",
    # the interval that has ended, so that its first day is complete
    schedule=CronDataIntervalTimetable("15 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 9, 1),
    catchup=True,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    PythonOperator(task_id="audit", python_callable=audit, op_kwargs={"day": "{{ data_interval_start | ds }}"})
