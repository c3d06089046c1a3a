# The server, and nothing that only building it needs.
#   docker build --tag ramet-server .
#   docker run --publish 50051:50051 --volume ramet:/data ramet-server
# On several cores, over a database server: --env RAMET_WORKERS=4 --env RAMET_DATABASE_URL=...

FROM python:3.11-slim AS build
WORKDIR /source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements/server.txt requirements/build.txt requirements/
RUN python -m venv /opt/ramet \
    && /opt/ramet/bin/pip install --require-hashes --requirement requirements/server.txt \
    && pip install --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY clients/python clients/python
COPY ramet_server ramet_server
COPY session_service session_service
COPY telemetry telemetry
COPY tree_service tree_service
RUN pip wheel --no-deps --no-build-isolation --wheel-dir wheels ./clients/python . \
    && /opt/ramet/bin/pip install --no-deps wheels/*.whl

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home ramet && install --directory --owner=ramet /data
COPY --from=build /opt/ramet /opt/ramet
ENV PATH=/opt/ramet/bin:$PATH PYTHONUNBUFFERED=1
# Where nothing else is said: everything in one process, over a file in the volume.
ENV RAMET_DATABASE_URL=sqlite:////data/ramet.db RAMET_LISTEN=0.0.0.0:50051
USER 10001
VOLUME /data
EXPOSE 50051
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["ramet-server", "health"]
ENTRYPOINT ["ramet-server"]
CMD ["all"]
