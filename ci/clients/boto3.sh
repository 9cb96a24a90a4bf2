# boto3.
. ../common.sh
READER=$(macronode keys create reader --scope read --s3)
export READER
python3 ../boto3_checks.py
stop_node
