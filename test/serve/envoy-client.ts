import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import {
  type ChannelCredentials,
  type Client,
  credentials,
  loadPackageDefinition,
  type ServiceError,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const deps = join(dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json')), 'deps')
const includeDirs = ['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map(name => join(deps, name))

type Method = (question: object, options: object, done: (error: ServiceError | null, answer: never) => void) => void
type Constructor = new (address: string, credentials: ChannelCredentials, options?: object) => Client

let loaded: ReturnType<typeof loadPackageDefinition> | undefined

/** Clients made of Envoy's own proto files, in the copy that gRPC's package for xDS has. */
function definitions(): ReturnType<typeof loadPackageDefinition> {
  loaded ??= loadPackageDefinition(
    loadSync(['envoy/service/ratelimit/v3/rls.proto', 'envoy/service/auth/v3/external_auth.proto'], {
      ...{ includeDirs, keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true },
    }),
  )
  return loaded
}

export interface EnvoyClient {
  limit(question: object, options?: object): Promise<Record<string, never>>
  check(question: object): Promise<Record<string, never>>
  close(): void
}

export function envoyClient(address: string, secured: ChannelCredentials = credentials.createInsecure()): EnvoyClient {
  const find = (path: string): Constructor =>
    path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], definitions()) as Constructor
  const clients = ['envoy.service.ratelimit.v3.RateLimitService', 'envoy.service.auth.v3.Authorization'].map(
    path => new (find(path))(address, secured, { 'grpc.enable_retries': 0 }) as Client & Record<string, Method>,
  )
  const ask = (client: number, method: string, question: object, options: object = {}) =>
    new Promise<Record<string, never>>((resolve, reject) =>
      clients[client]![method]!(question, { deadline: Date.now() + 5000, ...options }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      ),
    )
  return {
    limit: (question, options) => ask(0, 'ShouldRateLimit', question, options),
    check: question => ask(1, 'Check', question),
    close: () => {
      for (const client of clients) client.close()
    },
  }
}
