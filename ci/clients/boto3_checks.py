"""Checks of boto3: uploads in parts, ranges, pages, conditions, presigned URLs and the errors of signatures."""
import contextlib
import datetime
import io
import os
import random
import urllib.error
import urllib.request
import uuid
from unittest import mock

import boto3
import botocore.auth
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

try:  # used by boto3 if it is installed
    import botocore.crt.auth
    SIGNERS = "botocore.auth", "botocore.crt.auth"
except ImportError:
    SIGNERS = ("botocore.auth",)

BUCKET = "photos"
REAL_TIME = datetime.datetime


def client(access_key=None, secret=None, region=None, **config):
    """Return a client with the credentials of the environment unless others are given."""
    config = Config(signature_version="s3v4", retries={"max_attempts": 1}, **config)
    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], aws_access_key_id=access_key,
                        aws_secret_access_key=secret, region_name=region, config=config)


def rejected(want, request, **args):
    """Check that a call fails with an error code, and its status if want has one."""
    try:
        request(**args)
    except ClientError as e:
        got = f"{e.response['ResponseMetadata']['HTTPStatusCode']} {e.response['Error']['Code']}"
        assert got == want, f"got {got}, want {want}"
        return e.response["Error"]
    raise AssertionError(f"not rejected: {request} {args}")


def with_headers(s3, call, headers, **args):
    """Call with headers for which this version of boto3 has no argument."""
    def add(params, **_):
        params["headers"].update(headers)
    event = f"before-call.s3.{s3.meta.method_to_api_mapping[call]}"
    s3.meta.events.register(event, add)
    try:
        return getattr(s3, call)(**args)
    finally:
        s3.meta.events.unregister(event, add)


def check_transfers(s3):
    content = random.Random(3).randbytes(17_000_000)
    parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    s3.upload_fileobj(io.BytesIO(content), BUCKET, "large", Config=parts, ExtraArgs={"Metadata": {"color": "red"}})
    head = s3.head_object(Bucket=BUCKET, Key="large")
    assert head["ETag"].endswith('-4"') and head["Metadata"] == {"color": "red"}, head
    got = io.BytesIO()
    s3.download_fileobj(BUCKET, "large", got, Config=parts)
    assert got.getvalue() == content
    part = s3.get_object(Bucket=BUCKET, Key="large", Range="bytes=100-199")
    assert part["Body"].read() == content[100:200] and part["ContentRange"] == "bytes 100-199/17000000"
    assert s3.get_object(Bucket=BUCKET, Key="large", Range="bytes=-7")["Body"].read() == content[-7:]
    second = s3.get_object(Bucket=BUCKET, Key="large", PartNumber=2)
    assert second["Body"].read() == content[5 << 20:10 << 20] and second["PartsCount"] == 4
    rejected("416 InvalidRange", s3.get_object, Bucket=BUCKET, Key="large", Range="bytes=17000000-")
    print("shown: upload_fileobj in parts, ranges, part numbers")


def check_pages(s3):
    keys = [f"pages/{i % 5}/{i:03} ü" for i in range(50)]
    for key in keys:
        s3.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
    for operation in "list_objects", "list_objects_v2":
        pages = s3.get_paginator(operation).paginate(Bucket=BUCKET, Prefix="pages/", PaginationConfig={"PageSize": 7})
        assert [o["Key"] for page in pages for o in page["Contents"]] == sorted(keys)
        pages = s3.get_paginator(operation).paginate(Bucket=BUCKET, Prefix="pages/", Delimiter="/", PaginationConfig={"PageSize": 2})
        assert [p["Prefix"] for page in pages for p in page["CommonPrefixes"]] == [f"pages/{i}/" for i in range(5)]
    print("shown: paginators of both versions")


def check_empty_objects(s3):
    for body in b"", b"1", b"", b"2":
        s3.put_object(Bucket=BUCKET, Key="empty", Body=body)
        assert s3.get_object(Bucket=BUCKET, Key="empty")["Body"].read() == body
    print("shown: an empty object and then another over one connection")


def check_conditions(s3):
    put = s3.put_object(Bucket=BUCKET, Key="condition", Body=b"1")
    rejected("304 304", s3.get_object, Bucket=BUCKET, Key="condition", IfNoneMatch=put["ETag"])
    rejected("412 PreconditionFailed", s3.get_object, Bucket=BUCKET, Key="condition", IfMatch='"0"')
    s3.get_object(Bucket=BUCKET, Key="condition", IfMatch=put["ETag"])
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    rejected("304 304", s3.get_object, Bucket=BUCKET, Key="condition", IfModifiedSince=later)
    absent = {"If-None-Match": "*"}
    with_headers(s3, "put_object", absent, Bucket=BUCKET, Key="once", Body=b"1")
    rejected("412 PreconditionFailed", with_headers, s3=s3, call="put_object", headers=absent, Bucket=BUCKET, Key="once", Body=b"2")
    with_headers(s3, "put_object", {"If-Match": put["ETag"]}, Bucket=BUCKET, Key="condition", Body=b"2")
    rejected("412 PreconditionFailed", with_headers, s3=s3, call="put_object", headers={"If-Match": put["ETag"]},
             Bucket=BUCKET, Key="condition", Body=b"3")
    rejected("404 NoSuchKey", with_headers, s3=s3, call="put_object", headers={"If-Match": put["ETag"]}, Bucket=BUCKET, Key="none", Body=b"3")
    assert s3.get_object(Bucket=BUCKET, Key="condition")["Body"].read() == b"2"
    print("shown: conditional reads and writes, If-None-Match: * is 412 the second time")


def fetch(request):
    """Return the status and the body of the response."""
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def check_presigned(s3):
    url = s3.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "signed"})
    assert fetch(urllib.request.Request(url, data=b"content", method="PUT", headers={"Content-Type": ""}))[0] == 200
    url = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "signed", "ResponseContentType": "text/plain"})
    assert fetch(url) == (200, b"content")
    status, body = fetch(url.replace("signed", "other"))
    assert status == 403 and b"<Code>SignatureDoesNotMatch</Code>" in body, body

    post = s3.generate_presigned_post(BUCKET, "posted")
    boundary = uuid.uuid4().hex
    fields = {**post["fields"], "file": "content"}
    form = "".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()) + f"--{boundary}--\r\n"
    status, body = fetch(urllib.request.Request(post["url"], form.encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}))
    assert status == 501 and b"<Code>NotImplemented</Code>" in body, body
    print("shown: presigned URLs, and that a presigned POST is 501 NotImplemented")


class Skewed(REAL_TIME):
    """A clock that is 20 minutes slow."""

    @classmethod
    def utcnow(cls):
        return REAL_TIME.utcnow() - datetime.timedelta(minutes=20)


def check_signatures(s3):
    where = {"Bucket": BUCKET, "Key": "condition"}
    key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    rejected("403 SignatureDoesNotMatch", client(key, secret + "x").get_object, **where)
    rejected("403 InvalidAccessKeyId", client("MK0000000000000000", secret).get_object, **where)
    other = client(key, secret, "eu-west-1")
    status, body = fetch(other.generate_presigned_url("get_object", where))
    assert status == 400 and b"<Region>us-east-1</Region>" in body, body

    with contextlib.ExitStack() as patches:
        for signer in SIGNERS:
            patches.enter_context(mock.patch(f"{signer}.datetime.datetime", Skewed))
        rejected("403 RequestTimeTooSkewed", s3.get_object, **where)
    exports = dict(line.removeprefix("export ").split("=", 1) for line in os.environ["READER"].splitlines())
    reader = client(exports["AWS_ACCESS_KEY_ID"], exports["AWS_SECRET_ACCESS_KEY"])
    reader.get_object(**where)
    rejected("403 AccessDenied", reader.put_object, Body=b"1", **where)
    print("shown: wrong secret, unknown key, wrong region, skewed clock and missing scope have the error codes of S3")


def main():
    s3 = client()
    s3.create_bucket(Bucket=BUCKET)
    check_transfers(s3)
    check_pages(s3)
    check_empty_objects(s3)
    check_conditions(s3)
    check_presigned(s3)
    check_signatures(s3)
    boto3.resource("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).Bucket(BUCKET).objects.delete()
    s3.delete_bucket(Bucket=BUCKET)


main()
