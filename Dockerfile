# Bandwatch in one image: every role, the demo, and the embedded Postgres.
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv --without-pip /opt/bandwatch \
    && pip install --require-hashes -r requirements/build.txt \
    && pip --python /opt/bandwatch/bin/python install --require-hashes --only-binary :all: -r requirements/runtime.txt
COPY . .
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && pip --python /opt/bandwatch/bin/python install --no-deps /wheels/*.whl \
    && find /opt/bandwatch -depth -type d \( -name tests -o -name test \) -path '*site-packages/*' -exec rm -rf {} +

FROM python:3.13-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin \
    && useradd --system --uid 10001 --user-group --home-dir /var/lib/bandwatch --create-home --shell /usr/sbin/nologin bandwatch
COPY --from=build /opt/bandwatch /opt/bandwatch
ARG REVISION=unknown
ENV PATH=/opt/bandwatch/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    BANDWATCH_DATA=/var/lib/bandwatch \
    BANDWATCH_HOST=0.0.0.0 \
    BANDWATCH_REVISION=$REVISION
USER 10001:10001
WORKDIR /var/lib/bandwatch
VOLUME /var/lib/bandwatch
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('BANDWATCH_PORT', '8080') + '/livez', timeout=4)"]
ENTRYPOINT ["bandwatch"]
CMD ["serve"]
