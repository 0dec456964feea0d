import type { Server, Socket } from 'node:net'
import { readProxyHeader, type Source } from './proxy-header.ts'

export interface ProxyHeadersOptions {
  /** True if an address is that of a trusted proxy. */
  readonly isProxy: (address: string) => boolean
  /** Called for every connection that was closed. */
  readonly onRefused: () => void
  /** Called at most every ten seconds with their number so far, and why the last one was closed. */
  readonly onTrouble: (count: number, reason: string) => void
}

type Listener = (this: Server, socket: Socket) => void

/** The methods that Node's sockets, also those of TLS and HTTP/2 around them, ask for the address of the other end. */
interface PeerHandle {
  getpeername?: (out: Partial<Source>) => number
}

const headerMs = 5000
const headerBytes: unique symbol = Symbol('diana.proxyHeaderBytes')

/** Returns how many bytes of a connection were its PROXY header. */
export function proxyHeaderBytes(socket: Socket): number {
  return (socket as { [headerBytes]?: number })[headerBytes] ?? 0
}

const reportEveryMs = 10_000

/**
 * Reads the PROXY header of every connection before anything else does. Only trusted proxies may connect; from then on the
 * address in the header is that of the other end. A connection without a header, or with a wrong one, is closed.
 */
export class ProxyHeaders {
  readonly #options: ProxyHeadersOptions
  readonly #waiting = new Set<Socket>()
  #refused = 0
  #reportedAt = Number.NEGATIVE_INFINITY

  constructor(options: ProxyHeadersOptions) {
    this.#options = options
  }

  /** Stands between a server and its own listeners: a connection reaches them behind its header. */
  guard(server: Server): void {
    const listeners = server.listeners('connection') as Listener[]
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      this.#admit(socket, () => {
        for (const listener of listeners) listener.call(server, socket)
      })
    })
  }

  /** Cuts connections whose header has not come yet. */
  destroyAll(): void {
    for (const socket of this.#waiting) socket.destroy()
  }

  #admit(socket: Socket, serve: () => void): void {
    if (!this.#options.isProxy(socket.remoteAddress ?? '')) {
      this.#refuse(socket, whyUntrusted(socket))
      return
    }
    let bytes: Buffer = Buffer.alloc(0)
    const late = setTimeout(() => this.#refuse(socket, 'no PROXY header came in time'), headerMs).unref()
    const stop = (): void => {
      clearTimeout(late)
      this.#waiting.delete(socket)
      socket.off('readable', read).off('end', end).off('close', stop).off('error', ignore)
    }
    const read = (): void => {
      for (let piece: Buffer | null = socket.read(); piece !== null; piece = socket.read()) {
        bytes = bytes.length === 0 ? piece : Buffer.concat([bytes, piece])
      }
      const header = readProxyHeader(bytes)
      if (header === 'incomplete') return
      stop()
      if (header === 'invalid') {
        this.#refuse(socket, 'a connection began without a valid PROXY header')
        return
      }
      if (header.source) changePeer(socket, header.source)
      Object.assign(socket, { [headerBytes]: header.length })
      if (header.length < bytes.length) socket.unshift(bytes.subarray(header.length))
      serve()
    }
    const end = (): void => {
      stop()
      this.#refuse(socket, 'a connection ended before its PROXY header')
    }
    this.#waiting.add(socket)
    socket.on('readable', read).on('end', end).on('close', stop).on('error', ignore)
  }

  #refuse(socket: Socket, reason: string): void {
    socket.on('error', ignore).destroy()
    this.#refused++
    this.#options.onRefused()
    const now = performance.now()
    if (now - this.#reportedAt < reportEveryMs) return
    this.#reportedAt = now
    this.#options.onTrouble(this.#refused, reason)
  }
}

function ignore(): void {}

function whyUntrusted({ remoteAddress }: Socket): string {
  return remoteAddress === undefined
    ? 'a proxy connects over a Unix socket, and has no address that trustProxy could name: let it connect by TCP'
    : `${remoteAddress} is not a trusted proxy: name it under trustProxy`
}

/**
 * Changes the address of the other end in the one place that all layers ask: a property of the socket would not be seen by the TLS
 * socket around it.
 */
function changePeer(socket: Socket, source: Source): void {
  const inner = socket as unknown as { _handle: PeerHandle | null; _peername?: unknown }
  // a question from before the header came is remembered there
  inner._peername = undefined
  if (inner._handle === null) return
  inner._handle.getpeername = out => {
    Object.assign(out, source)
    return 0
  }
}
