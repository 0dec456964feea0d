import {
  type handleUnaryCall,
  Metadata,
  makeGenericClientConstructor,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js'
import type { GatewayRig } from './gateway-rig.ts'

const asIs = (bytes: Buffer): Buffer => bytes

const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  ...{ path: `/test.Echo/${name}`, requestStream, responseStream },
  ...{ requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs },
})

/** A service whose messages are plain bytes, with one method of each kind. */
export const echo = {
  Unary: method('Unary', false, false),
  Other: method('Other', false, false),
  Collect: method('Collect', true, false),
  Repeat: method('Repeat', false, true),
  Talk: method('Talk', true, true),
} satisfies ServiceDefinition

export const EchoClient = makeGenericClientConstructor(echo, 'Echo')

export interface GrpcService {
  readonly port: number
  readonly server: Server
  /** What became of calls, in order. */
  readonly seen: string[]
}

/** Starts the service on a port of its own. */
export async function serveGrpc(
  rig: GatewayRig,
  credentials = ServerCredentials.createInsecure(),
): Promise<GrpcService> {
  const seen: string[] = []
  const unary: handleUnaryCall<Buffer, Buffer> = (call, done) => {
    const word = call.request.toString()
    seen.push(word)
    const metadata = new Metadata()
    metadata.set('x-after', 'behind')
    if (word === 'wait') {
      call.on('cancelled', () => seen.push('wait cancelled'))
      return
    }
    if (word === 'fail') {
      metadata.set('details-bin', Buffer.from([0, 1, 255]))
      done({ code: status.FAILED_PRECONDITION, details: 'not now, größer', metadata })
      return
    }
    const early = new Metadata()
    early.set('x-seen', String(call.metadata.get('x-mine')[0] ?? ''))
    call.sendMetadata(early)
    done(null, call.request, metadata)
  }
  const server = new Server({ 'grpc.max_receive_message_length': -1 })
  server.addService(echo, {
    Unary: unary,
    Other: unary,
    Collect: (call: ServerReadableStream<Buffer, Buffer>, done: (error: null, value: Buffer) => void) => {
      const words: string[] = []
      call.on('data', (piece: Buffer) => words.push(piece.toString()))
      call.on('end', () => done(null, Buffer.from(words.join(' '))))
    },
    Repeat: (call: ServerWritableStream<Buffer, Buffer>) => {
      call.on('cancelled', () => seen.push('repeat cancelled'))
      for (let at = 0; at < 5; at++) call.write(Buffer.from(`${call.request} ${at}`))
      if (call.request.toString() !== 'forever') call.end()
    },
    Talk: (call: ServerDuplexStream<Buffer, Buffer>) => {
      call.on('data', (piece: Buffer) => call.write(piece))
      call.on('end', () => call.end())
      call.on('cancelled', () => seen.push('talk cancelled'))
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
  )
  rig.later(() => server.forceShutdown())
  return { port, server, seen }
}
