import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { type GatewayRig, sendRaw } from '../helpers/gateway-rig.ts'

export type Suite = 'http-proxy' | 'http-proxy-middleware' | 'reply-from' | 'nginx'

/** Something that other proxies' test suites check, and how the gateway is seen to do it. */
export interface Behavior {
  /** As docs/behaviors.md has it. */
  readonly behavior: string
  /** Whose test suites check it. */
  readonly suites: readonly Suite[]
  readonly check: (stage: Stage) => Promise<void>
}

/** What a service got: the calls as bytes. */
export interface Served {
  readonly port: number
  readonly url: string
  readonly calls: string[]
  /** How many connections the service has got. */
  connections(): number
}

/** A gateway in front of services, for one behavior. */
export class Stage {
  readonly rig: GatewayRig

  constructor(rig: GatewayRig) {
    this.rig = rig
  }

  /** In front of a service that answers every call with these bytes. */
  async bytes(answer: string | ((socket: Socket, call: string) => void), route: object = {}): Promise<Served> {
    const calls: string[] = []
    let connections = 0
    const to = await this.rig.serveRaw(socket => {
      connections++
      let call = ''
      socket.on('data', piece => {
        call += piece.toString('latin1')
        if (!isWhole(call)) return
        calls.push(call)
        if (typeof answer === 'string') socket.write(answer, 'latin1')
        else answer(socket, call)
        call = ''
      })
    })
    const guarded = await this.rig.guard({ gateway: { routes: [{ to, ...route }] } })
    return { port: guarded.port, url: guarded.url, calls, connections: () => connections }
  }

  /** In front of a Node service; `gateway` has the routes if there is more than one. */
  async service(answer: RequestListener, route: object = {}, gateway: object = {}) {
    const service = await this.rig.serve(answer)
    const guarded = await this.rig.guard({ gateway: { routes: [{ to: service.url, ...route }], ...gateway } })
    return { ...guarded, received: service.received, serviceUrl: service.url }
  }

  /** One call on a connection of its own, as bytes; gives the answer as bytes. */
  async call(port: number, first = 'GET / HTTP/1.1', headers: readonly string[] = [], body = ''): Promise<string> {
    const host = headers.some(line => /^host:/i.test(line)) ? [] : ['Host: shop.example']
    return await sendRaw(port, `${[first, ...host, 'Connection: close', ...headers].join('\r\n')}\r\n\r\n${body}`)
  }
}

function isWhole(call: string): boolean {
  const [head = '', ...rest] = call.split('\r\n\r\n')
  if (!call.includes('\r\n\r\n')) return false
  const body = rest.join('\r\n\r\n')
  if (/^transfer-encoding: chunked/im.test(head)) return body.endsWith('0\r\n\r\n') || body === '0'
  return body.length >= Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
}

export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

export const statusOf = (answer: string): number =>
  Number([...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(match => match[1]).find(status => !status!.startsWith('1')))

export const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4)

/** The values of a header, in order. */
export const headersOf = (message: string, name: string): string[] =>
  [...message.split('\r\n\r\n')[0]!.matchAll(new RegExp(`^${name}: (.*)$`, 'gim'))].map(match => match[1]!.trim())
