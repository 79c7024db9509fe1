"""A Prefect flow that runs the job: python jobs/submit/flow_prefect.py"""

from prefect import flow, task

from excir_dask import explain
from excir_dask.errors import ExcirError

TRY_AGAIN = 75


def worth_another_try(task, run, state) -> bool:
    """Errors with exit code 75 are transient: the cluster was lost, or a file changed during the run."""
    try:
        state.result()
    except ExcirError as error:
        return error.exit_code == TRY_AGAIN
    except Exception:
        return True
    return False


@task(retries=3, retry_delay_seconds=600, retry_condition_fn=worth_another_try)
def explain_lake(lake: str, output: str, out: str, scheduler: str | None = None) -> str:
    """Returns the run id. With the same files nothing is computed again."""
    explanation = explain(lake, output=output, features=["!label"], out=out, overwrite=True, scheduler=scheduler)
    return explanation.provenance.run_id


@flow(name="excir-explain")
def explain_flow(lake: str = "excir-demo/lake", output: str = "margin", out: str = "excir-demo/from-prefect") -> str:
    return explain_lake(lake, output, out)


if __name__ == "__main__":
    explain_flow()
