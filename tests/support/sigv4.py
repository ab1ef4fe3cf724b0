"""An AWS client: signs a POST as botocore does, with what the environment says, and prints the answer. With `check`, it says
what the signature of a request that arrived should be, for the key in the environment."""
import hashlib, hmac, json, os, re, sys, urllib.request

DATE, SCOPE = "20261201T101112Z", "20261201/us-east-1/bedrock/aws4_request"


def signature(headers, path, body):
    signed = sorted(headers)
    lines = ["POST", path, ""] + ["%s:%s" % (name, headers[name]) for name in signed]
    canonical = "\n".join(lines + ["", ";".join(signed), hashlib.sha256(body).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", DATE, SCOPE, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in SCOPE.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return ";".join(signed), hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def headers(token, host="api.example"):
    return {"content-type": "application/json", "host": host, "x-amz-date": DATE, "x-amz-security-token": token}


body = b'{"messages": [1, 2, 3]}'
if sys.argv[1] == "check":
    arrived = json.load(sys.stdin)
    names = {name.lower(): value for name, value in arrived["headers"].items()}
    assert names["x-amz-security-token"] == os.environ["AWS_SESSION_TOKEN"], names
    # Services other than S3 escape the path once more.
    wanted = signature(headers(names["x-amz-security-token"]), "/model/a%253Ab/invoke", arrived["body"].encode())[1]
    expected = "AWS4-HMAC-SHA256 Credential=%s/%s, " % (os.environ["AWS_ACCESS_KEY_ID"], SCOPE)
    assert names["authorization"].startswith(expected), names
    assert re.search("Signature=(.*)", names["authorization"])[1] == wanted, names
    print("right")
else:
    sent = headers(os.environ["AWS_SESSION_TOKEN"], sys.argv[1])
    signed, made = signature(sent, "/model/a%253Ab/invoke", body)
    credential = "%s/%s" % (os.environ["AWS_ACCESS_KEY_ID"], SCOPE)
    sent["authorization"] = "AWS4-HMAC-SHA256 Credential=%s, SignedHeaders=%s, Signature=%s" % (credential, signed, made)
    url = "https://%s/model/a%%3Ab/invoke" % sys.argv[1]
    request = urllib.request.Request(url, body, sent)
    try:
        print(urllib.request.urlopen(request, timeout=20).read().decode())
    except urllib.error.HTTPError as error:
        print(error.headers["redoma-reason"], error.read().decode())
