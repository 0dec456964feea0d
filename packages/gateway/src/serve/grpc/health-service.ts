import { type Repeated, repeat } from 'diana-limiter/gateway'
import { ProtoReader, tagOf, wire } from '../protobuf/proto-reader.ts'
import { ProtoWriter } from '../protobuf/proto-writer.ts'
import { GrpcError } from './grpc-error.ts'
import type { GrpcMethod } from './grpc-method.ts'
import { frameHeadBytes, writeFrameHead } from './message-frames.ts'

const serving = 1
const notServing = 2
const notFound = 5
const serviceUnknown = 3
const watchMs = 500

/** Returns the health of all services together, as `grpc.health.v1.Health` reports it; a service that is not there is not known. */
export function healthService(services: readonly string[], isReady: () => boolean): GrpcMethod[] {
  const known = new Set(['', ...services])
  const statusOf = (service: string): number =>
    known.has(service) ? (isReady() ? serving : notServing) : serviceUnknown
  return [
    {
      kind: 'unary',
      path: '/grpc.health.v1.Health/Check',
      answer: message => {
        const status = statusOf(readService(message))
        if (status === serviceUnknown) throw new GrpcError(notFound, 'there is no such service')
        return response(status)
      },
    },
    {
      kind: 'stream',
      path: '/grpc.health.v1.Health/Watch',
      open: stream => {
        let watching: Repeated | undefined
        let reported = -1
        return {
          message: message => {
            const service = readService(message)
            const report = (): void => {
              const status = statusOf(service)
              if (status !== reported) stream.send(response(status))
              reported = status
            }
            watching?.stop()
            report()
            watching = repeat('watchers of health', watchMs, report)
            stream.signal().addEventListener('abort', () => watching?.stop(), { once: true })
          },
          // its caller has nothing more to say, and listens
          end: () => {},
        }
      },
    },
  ]
}

function readService(message: Buffer): string {
  const reader = new ProtoReader(message)
  let service = ''
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === tagOf(1, wire.bytes)) service = reader.text()
    else reader.skip(tag)
  }
  return service
}

function response(status: number): Buffer {
  return new ProtoWriter().begin(frameHeadBytes).number(1, status).end(writeFrameHead)
}
