"""An Airflow DAG: the audit of each day, after it is over. Copy it to the folder of DAGs."""

import subprocess
from datetime import datetime, timedelta

from airflow.decorators import dag, task
from airflow.exceptions import AirflowException, AirflowFailException

TRY_AGAIN = 75


@dag(
    schedule="15 3 * * *",
    start_date=datetime(2026, 9, 1),
    catchup=True,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
)
def excir_audit():
    @task
    def audit(ds: str | None = None) -> str:
        done = subprocess.run(
            ["excir", "audit", "/etc/excir/audit.yaml", "--date", str(ds), "--json"], stdout=subprocess.PIPE, text=True
        )
        if done.returncode == TRY_AGAIN:
            raise AirflowException(done.stdout)
        if done.returncode != 0:  # a failed check, configuration or lake: trying again does not help
            raise AirflowFailException(done.stdout)
        return done.stdout

    audit()


excir_audit()
