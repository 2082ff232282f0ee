"""Price files, good and bad."""

import json

import pytest

from shoestring.errors import DataError, MissingExtra, ShoestringError
from shoestring.kernel.types import Offer
from shoestring.market import price_files
from shoestring.market.price_files import read_prices

AT = 1740787200.0  # 2025-03-01 00:00 UTC
OFFER = Offer(provider="aws", zone="us-east-1a", machine="m5.large", spot=True)


def record(time="2025-03-01T00:00:00+00:00", price="0.040000", zone="us-east-1a", product="Linux/UNIX"):
    return {
        "AvailabilityZone": zone,
        "InstanceType": "m5.large",
        "ProductDescription": product,
        "SpotPrice": price,
        "Timestamp": time,
    }


def write_json(tmp_path, records):
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"SpotPriceHistory": records}))
    return path


def write_csv(tmp_path, text):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    return path


HEAD = "timestamp,instance_type,az,price_usd_hr\n"


def test_the_output_of_the_aws_command_is_read_newest_first_as_it_comes(tmp_path):
    newest_first = [record("2025-03-01T12:00:00+00:00", "0.05"), record("2025-03-01T00:00:00Z", "0.04")]
    trace = read_prices(write_json(tmp_path, newest_first)).trace(OFFER)
    assert (trace.times, trace.usd_per_hour) == ((AT, AT + 43200), (0.04, 0.05))


def test_json_lines_are_read(tmp_path):
    path = tmp_path / "prices.jsonl"
    path.write_text("\n".join(json.dumps(record(f"2025-03-0{day}T00:00:00Z")) for day in (1, 2)) + "\n\n")
    assert read_prices(path).trace(OFFER).times == (AT, AT + 86400)


def test_csv_is_read_with_times_as_text_or_seconds(tmp_path):
    text = HEAD + f"2025-03-01 00:00:00,m5.large,us-east-1a,0.04\n{AT + 60},m5.large,us-east-1a,0.05\n"
    assert read_prices(write_csv(tmp_path, text)).trace(OFFER).times == (AT, AT + 60)


def test_parquet_is_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "timestamp": pandas.to_datetime(["2025-03-01 00:00:00", "2025-03-01 06:00:00"]),
            "instance_type": ["m5.large"] * 2,
            "az": ["us-east-1a"] * 2,
            "price_usd_hr": [0.04, 0.05],
            "carried": [True, False],
        }
    )
    path = tmp_path / "prices.parquet"
    for unit in ("ns", "us", "s"):
        frame["timestamp"] = frame["timestamp"].astype(f"datetime64[{unit}]")
        frame.to_parquet(path)
        assert read_prices(path).trace(OFFER).times == (AT, AT + 21600)
    frame["timestamp"] = ["2025-03-01T00:00:00Z", "2025-03-01T06:00:00Z"]
    frame.to_parquet(path)
    assert read_prices(path).trace(OFFER).times == (AT, AT + 21600)


def test_exact_repeats_are_dropped_and_other_products_left_out(tmp_path):
    records = [record(), record(), record(product="Windows", price="0.09")]
    assert read_prices(write_json(tmp_path, records)).trace(OFFER).usd_per_hour == (0.04,)


def test_only_the_selected_series_are_kept(tmp_path):
    path = write_json(tmp_path, [record(), record(zone="us-east-1b")])
    assert [offer.zone for offer in read_prices(path, zones=["us-east-1b"])] == ["us-east-1b"]


BAD_CSV = {
    "wrong columns": ("when,what\n1,2\n", "no column for the time; it has 'when', 'what'"),
    "no header": ("", "no column for the time; it has none at all"),
    "no price column": ("timestamp,instance_type,az,cost\n", "no column for the price"),
    "header only": (HEAD, "holds no matching prices"),
    "negative price": (HEAD + "2025-03-01,m5.large,us-east-1a,-0.04\n", r"line 2: price '-0.04' is not a positive"),
    "price of zero": (HEAD + "2025-03-01,m5.large,us-east-1a,0\n", "line 2: price '0' is not a positive"),
    "price not a number": (HEAD + "2025-03-01,m5.large,us-east-1a,cheap\n", "line 2: price 'cheap'"),
    "price nan": (HEAD + "2025-03-01,m5.large,us-east-1a,nan\n", "line 2: price 'nan'"),
    "no such day": (HEAD + "2025-02-30,m5.large,us-east-1a,0.04\n", "line 2: timestamp '2025-02-30' cannot be read"),
    "no time": (HEAD + ",m5.large,us-east-1a,0.04\n", "line 2: timestamp '' cannot be read"),
    "a year is no time": (HEAD + "2025,m5.large,us-east-1a,0.04\n", "line 2: timestamp '2025' cannot be read"),
    "milliseconds": (HEAD + "1740787260000,m5.large,us-east-1a,0.04\n", "timestamp '1740787260000' cannot be read"),
    "no machine": (HEAD + "2025-03-01,,us-east-1a,0.04\n", "line 2: machine type ''"),
    "short line": (HEAD + "2025-03-01,m5.large\n", "line 2 has 2 cells, the header 4"),
    "two prices at once": (
        HEAD + "2025-03-01,m5.large,us-east-1a,0.04\n2025-03-01,m5.large,us-east-1a,0.05\n",
        "line 3: two prices of m5.large in us-east-1a at 2025-03-01 00:00 UTC: 0.04 and 0.05",
    ),
    "a hole": (
        HEAD + "2025-03-01,m5.large,us-east-1a,0.04\n2025-03-09,m5.large,us-east-1a,0.05\n",
        r"no price of m5.large in us-east-1a from 2025-03-01 00:00 UTC to 2025-03-09 00:00 UTC \(192 h",
    ),
    "a series that stops early": (
        HEAD + "2025-03-01,c5.large,us-east-1a,0.04\n"
        "2025-03-01,m5.large,us-east-1a,0.04\n2025-03-02,m5.large,us-east-1a,0.04\n2025-03-04,m5.large,us-east-1a,0.04\n",
        "no price of c5.large in us-east-1a from 2025-03-01 00:00 UTC to 2025-03-04",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", BAD_CSV)
def test_a_bad_file_is_refused_with_its_name_and_the_place(tmp_path, wrong):
    text, message = BAD_CSV[wrong]
    with pytest.raises(DataError, match=message) as error:
        read_prices(write_csv(tmp_path, text))
    assert "prices.csv" in str(error.value)


def test_a_known_gap_can_be_allowed(tmp_path):
    path = write_csv(tmp_path, BAD_CSV["a hole"][0])
    assert len(read_prices(path, max_gap_s=10 * 86400.0).trace(OFFER).times) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.json", b"{not json", "is not JSON"),
        ("p.json", b'{"Prices": []}', "no list 'SpotPriceHistory'"),
        ("p.json", b'{"SpotPriceHistory": []}', "holds no matching prices"),
        ("p.json", b'[{"SpotPrice": "1"}]', "record 1 has no column for the time"),
        ("p.json", b"[3]", "record 1: 3 is not a record"),
        ("p.jsonl", b'{"a": 1', "line 1 is not JSON"),
        ("p.csv", b"\xff\xfe\x00\x01", "cannot be read"),
        ("p.parquet", b"this is not parquet", "is not a parquet file"),
        ("p.xlsx", b"", "cannot tell the format"),
    ],
)
def test_a_file_without_prices_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_prices(path)


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv", ".parquet"])
def test_a_missing_file_or_a_folder_is_a_clear_error(tmp_path, ending):
    with pytest.raises(DataError, match="there is no such file"):
        read_prices(tmp_path / f"absent{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(DataError):
        read_prices(tmp_path / f"folder{ending}")


def test_a_missing_product_is_named_with_those_present(tmp_path):
    with pytest.raises(DataError, match="it has Windows but not Linux/UNIX"):
        read_prices(write_json(tmp_path, [record(product="Windows")]))


def test_parquet_without_pyarrow_names_the_install_command(tmp_path, monkeypatch):
    def missing(module, extra):
        raise MissingExtra(module, hint=f"pip install 'shoestring[{extra}]'")

    monkeypatch.setattr(price_files, "need", missing)
    with pytest.raises(ShoestringError) as error:
        read_prices(tmp_path / "prices.parquet")
    assert error.value.hint == "pip install 'shoestring[tables]'"


@pytest.mark.parametrize(
    ("name", "series"), [("spot_aws_us-east-1_2016-02_04.parquet", 49), ("spot_aws_us-east-1_2025-03.parquet", 300)]
)
def test_real_price_files_are_read_whole(real_data, name, series):
    assert len(read_prices(real_data(name))) == series
