import { departure } from '../plan/scripts.mjs'
import { field, flags, frame, number, preface } from './frames.mjs'

const codes = [0, 1, 2, 5, 7, 8, 11, 13]
const paths = ['/a?answer=0', '/good/x', '/limited/a', '/healthz', '/check/nginx', '/v1/check', '/nowhere', '/%zz']
const grpcPaths = [
  '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  '/envoy.service.auth.v3.Authorization/Check',
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/Watch',
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
]

function head(random) {
  const isGrpc = random.chance(0.4)
  const fields = [
    [':method', random.pick(['GET', 'POST', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'x'])],
    [':scheme', 'http'],
    [':authority', 'fuzz.example'],
    [':path', random.pick(isGrpc ? grpcPaths : paths)],
    ...(isGrpc ? [['content-type', random.pick(['application/grpc', 'application/grpc-web'])]] : []),
    ...(random.chance(0.5) ? [['expect', random.pick(['100-continue', '100-continue', 'x'])]] : []),
    ...(random.chance(0.3) ? [['content-length', random.pick(['0', '2', '100'])]] : []),
    ...(random.chance(0.2) ? [['grpc-timeout', random.pick(['0m', '1m', '1S'])]] : []),
  ]
  return fields.map(([name, value]) => field(name, value)).join('')
}

/** Streams that are opened and reset: at once, after a body, in one piece or in several. */
export function resetStreams(random) {
  const length = random.pick([1, 20, 150, 400, 1500])
  const block = random.chance(0.3) ? head(random) : undefined
  const pieces = random.list(length, index => {
    const id = 2 * index + 1
    const isWhole = random.chance(0.4)
    const opening = frame('headers', flags.endHeaders | (isWhole ? flags.endStream : 0), id, block ?? head(random))
    const body = !isWhole && random.chance(0.3) ? frame('data', 0, id, '\0\0\0\0\x02ok') : ''
    return opening + body + (random.chance(0.95) ? frame('reset', 0, id, number(random.pick(codes))) : '')
  })
  const opening = preface + frame('settings', 0, 0)
  const cut = random.pick([pieces.length, 1, 10, 100])
  const steps = [{ write: opening }]
  for (let at = 0; at < pieces.length; at += cut) {
    steps.push({ write: pieces.slice(at, at + cut).join('') })
    if (random.chance(0.1)) steps.push({ pause: random.int(0, 10) })
  }
  return { requests: length, aborted: length, steps: [...steps, ...departure(random)] }
}
