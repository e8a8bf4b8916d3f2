"""Answers questions about a file by other people's tools, as JSON.

    ask.py TOOL FILE < QUESTIONS

TOOL is duckdb, pyarrow, polars or pandas, and FILE Parquet; or scipy or statsmodels, and FILE JSON: an
object of columns. QUESTIONS is a JSON list: SQL over the table `t` for duckdb, `["sum", COLUMN]` and the
like for the others.
"""

import json
import sys


def duckdb(path, questions):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
    return [[list(row) for row in connection.execute(q).fetchall()] for q in questions]


def pyarrow(path, questions):
    import pyarrow.compute as compute
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)

    def answer(what, column=None):
        if what == "rows":
            return table.num_rows
        values = table[column]
        if what == "ns":  # sum of times: beyond 64 bits, so as text
            return str(sum(value.value for value in values if value.is_valid))
        if what == "nulls":
            return values.null_count
        if what == "counts":
            counts = values.combine_chunks()
            counts = compute.value_counts(counts.cast("string"))
            return sorted((c["values"].as_py() or "", c["counts"].as_py()) for c in counts)
        return getattr(compute, what)(values).as_py()

    return [answer(*question) for question in questions]


def polars(path, questions):
    import polars

    table = polars.read_parquet(path)

    def answer(what, column=None):
        if what == "rows":
            return table.height
        values = table[column]
        if what == "ns":
            return str(sum(values.drop_nulls().dt.epoch("ns").to_list()))
        if what == "nulls":
            return values.null_count()
        if what == "counts":
            counts = values.cast(polars.String).value_counts().rows()
            return sorted([(name or "", count) for name, count in counts])
        return getattr(values, what)()

    return [answer(*question) for question in questions]


def pandas(path, questions):
    import pandas

    table = pandas.read_parquet(path)

    def answer(what, column=None):
        if what == "rows":
            return len(table)
        values = table[column]
        if what == "ns":
            return str(sum(int(ns) for ns in values.dropna().astype("int64")))
        if what == "nulls":
            return int(values.isna().sum())
        if what == "counts":
            counts = values.astype("object").value_counts(dropna=False)
            return sorted(("" if n is None or n != n else str(n), int(c)) for n, c in counts.items())
        return int(getattr(values, what)())

    return [answer(*question) for question in questions]


def scipy(path, questions):
    from scipy import stats

    columns = json.load(open(path))

    def answer(what, *names):
        one, other = (columns[name] for name in names)
        if what == "linregress":
            found = stats.linregress(one, other)
            return [found.slope, found.intercept, found.stderr, found.intercept_stderr, found.rvalue**2, found.pvalue]
        if what == "theilslopes":
            found = stats.theilslopes(other, one)
            return [found.slope, found.low_slope, found.high_slope]
        if what == "welch":  # the second less the first
            found = stats.ttest_ind(other, one, equal_var=False)
            return [found.pvalue, *found.confidence_interval(0.95)]
        if what == "above":  # how probably one of the second is above one of the first
            return stats.mannwhitneyu(other, one).statistic / (len(one) * len(other))
        raise ValueError(what)

    return [answer(*question) for question in questions]


def statsmodels(path, questions):
    import pandas
    from statsmodels.formula.api import ols, rlm
    from statsmodels.stats.diagnostic import het_breuschpagan, linear_reset
    from statsmodels.stats.stattools import durbin_watson

    data = pandas.DataFrame(json.load(open(path)))

    def answer(formula, at):
        import numpy as np  # noqa: F401 formulas name it

        fit = ols(formula, data).fit()
        there = fit.get_prediction(pandas.DataFrame([at])).summary_frame(alpha=0.05).iloc[0]
        reset = linear_reset(fit, power=3, use_f=True)
        # Needs a constant.
        spread = het_breuschpagan(fit.resid, fit.model.exog) if fit.k_constant else [None, None]
        return {
            "coefficients": [
                [fit.params[it], fit.bse[it], fit.tvalues[it], fit.pvalues[it], *fit.conf_int().loc[it]]
                for it in fit.params.index
            ],
            "r2": [fit.rsquared, fit.rsquared_adj],
            "criteria": [fit.aic, fit.bic],
            "sigma": fit.mse_resid**0.5,
            "f": [fit.fvalue, fit.f_pvalue],
            "prediction": list(there[["mean", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper"]]),
            "reset": [float(reset.fvalue), float(reset.pvalue)],
            "spread": list(spread[:2]),
            "durbin_watson": durbin_watson(fit.resid),
            "cook": float(fit.get_influence().cooks_distance[0].max()),
            "huber": list(rlm(formula, data).fit(maxiter=200, tol=1e-12).params),
        }

    return [answer(*question) for question in questions]


tool, path = sys.argv[1:]
answers = globals()[tool](path, json.load(sys.stdin))
print(json.dumps(answers, default=str))
