# To be sourced. uv does not read pip's configuration: hands on the index and the certificates that it names.
index="${PIP_INDEX_URL:-$("${python:-python3}" -m pip config get global.index-url 2>/dev/null || true)}"
cert="${PIP_CERT:-$("${python:-python3}" -m pip config get global.cert 2>/dev/null || true)}"
if [[ -n $index && -z ${UV_DEFAULT_INDEX:-} ]]; then export UV_DEFAULT_INDEX="$index"; fi
if [[ -n $cert && -z ${SSL_CERT_FILE:-} ]]; then export SSL_CERT_FILE="$cert"; fi
export UV_PYTHON_DOWNLOADS=never
# Another project's environment may be active; this one is meant.
unset VIRTUAL_ENV CONDA_PREFIX
