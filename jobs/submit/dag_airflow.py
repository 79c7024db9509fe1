"""An Airflow DAG that runs the job as a command, and as a call of the library. Copy it to the DAGs folder."""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.exceptions import AirflowFailException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import PythonOperator

COMMAND = "python jobs/explain.py --config jobs/explain.yaml --json"
TRY_AGAIN = 75


def explain_lake() -> str:
    """Returns the run id. With the same files nothing is computed again."""
    from excir_dask import explain
    from excir_dask.errors import ExcirError

    try:
        explanation = explain(
            "excir-demo/lake", output="margin", features=["!label"], out="excir-demo/from-airflow", overwrite=True
        )
    except ExcirError as error:
        if error.exit_code == TRY_AGAIN:
            raise
        raise AirflowFailException(str(error)) from error  # a retry would fail in the same way
    return explanation.provenance.run_id


with DAG(
    "excir_explain",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    BashOperator(task_id="as_a_command", bash_command=COMMAND, cwd="/srv/excir")
    PythonOperator(task_id="as_a_call", python_callable=explain_lake)
