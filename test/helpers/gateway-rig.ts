import { type EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { stringify } from 'yaml'
import {
  type GatewayOptions,
  gatewaySection,
  type OpenGateway,
  openGateway,
} from '../../packages/gateway/src/gateway.ts'

export interface Service {
  readonly url: string
  readonly server: Server
  readonly received: IncomingMessage[]
}

export interface Guarded {
  readonly gateway: FastifyInstance
  readonly limiter: Limiter
  readonly url: string
  readonly port: number
  readonly httpStats: OpenGateway['httpStats']
  readonly reopenLogs: OpenGateway['reopenLogs']
  /** Writes the file anew, as an operator would. */
  rewrite(document: object): void
}

/** What a test of the gateway starts, and what ends it all again. */
export class GatewayRig {
  readonly #closing: (() => unknown)[] = []
  #nowhere = 0

  /** A service that remembers what reached it. */
  async serve(answer: RequestListener = (_request, response) => response.end('served')): Promise<Service> {
    const received: IncomingMessage[] = []
    const server = createServer((request, response) => {
      received.push(request)
      answer(request, response)
    })
    return { url: await this.listen(server), server, received }
  }

  /**
   * Another address each time at which nothing listens. The port of a server that was closed will not do: the system may give it to a
   * server of another test. It gives none below 1024 unless asked for it.
   */
  nowhere(): string {
    return `http://127.0.0.1:${++this.#nowhere}`
  }

  /** Something that listens and speaks no HTTP. */
  async serveRaw(onSocket: (socket: Socket) => void): Promise<string> {
    const server = createTcpServer(socket => {
      socket.on('error', () => {})
      onSocket(socket)
    })
    return await this.listen(server)
  }

  /** Lets a server listen until the test has ended. */
  async listen(server: Server | ReturnType<typeof createTcpServer>): Promise<string> {
    const destroyConnections = trackConnections(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#closing.push(() => {
      server.close()
      destroyConnections()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** A gateway by a rule file with these words. */
  async guard(document: object, options: Partial<GatewayOptions> = {}): Promise<Guarded> {
    const folder = this.folder()
    const config = join(folder, 'diana.yaml')
    const rewrite = (words: object): void =>
      writeFileSync(config, stringify({ rules: [{ id: 'all', limit: '1000000/s' }], ...words }))
    rewrite(document)
    const limiter = await createLimiter({ config, sections: [gatewaySection] })
    const { app: gateway, httpStats, reopenLogs } = await openGateway({ limiter, folder, ...options })
    const destroyConnections = trackConnections(gateway.server)
    this.#closing.push(
      () => limiter.close(),
      () => gateway.close(),
      // kept connections would hold up the end by a quarter of a second
      destroyConnections,
    )
    const url = await gateway.listen({ port: 0, host: '127.0.0.1' })
    return { gateway, limiter, url, port: Number(new URL(url).port), httpStats, reopenLogs, rewrite }
  }

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'diana-gateway-'))
    this.#closing.push(() => rmSync(folder, { recursive: true, force: true }))
    return folder
  }

  later(close: () => unknown): void {
    this.#closing.push(close)
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0).reverse()) await close()
  }
}

function trackConnections(server: EventEmitter): () => void {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

/** Sends bytes as they are, and gives back all that came until the other side ended. */
export async function sendRaw(port: number, ...pieces: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1')
  for (const piece of pieces) socket.write(piece)
  let answer = ''
  socket.on('error', () => {})
  socket.on('data', piece => {
    answer += piece
  })
  await once(socket, 'close')
  return answer
}

export function statusesIn(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(match => Number(match[1]))
}
