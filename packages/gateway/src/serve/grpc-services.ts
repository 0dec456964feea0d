import type { Limiter } from 'diana-limiter'
import type { ServerTls } from '../http/tls/server-tls.ts'
import { authorizationService } from './authorization/authorization-service.ts'
import type { Peers } from './calls/peers.ts'
import { GrpcServer } from './grpc/grpc-server.ts'
import { healthService } from './grpc/health-service.ts'
import { reflectionServices } from './grpc/reflection/reflection-service.ts'
import { Overrides } from './rate-limit/overrides.ts'
import { rateLimitService } from './rate-limit/rate-limit-service.ts'
import type { ServeSettings } from './serve-settings.ts'

export interface GrpcServicesParts {
  readonly limiter: Limiter
  readonly peers: Peers
  readonly tls: ServerTls | undefined
  readonly settings: () => ServeSettings
  readonly isReady: () => boolean
  readonly onRefused: (reason: string) => void
}

/** As other servers of gRPC read by default: a message has the headers of a request, and its body if the proxy is set to send it. */
const maxMessageBytes = 4 * 1024 * 1024

/** Returns the server with all services that speak gRPC. */
export function createGrpcServer(parts: GrpcServicesParts): GrpcServer {
  const { limiter, peers, tls, settings, isReady, onRefused } = parts
  // counts of limits that descriptors bring along live where those of the rules do
  const isShared = limiter.rules.some(({ count }) => count === 'distributed')
  const deadlineMs = (): number => settings().deadlineMs
  const deciding = [
    rateLimitService({ limiter, overrides: new Overrides(limiter, isShared), deadlineMs }),
    authorizationService({ limiter, peers, deadlineMs }),
  ]
  const names = deciding.map(({ path }) => path.split('/')[1]!)
  return new GrpcServer({
    methods: [...deciding, ...healthService(names, isReady), ...reflectionServices()],
    ...{ tls, maxMessageBytes, onRefused },
    mayAsk: socket => peers.mayAsk(socket),
    maxConnections: settings().connections,
  })
}
