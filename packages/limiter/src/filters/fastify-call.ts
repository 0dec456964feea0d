import type { FastifyRequest } from 'fastify'
import type { Call } from '../call.ts'
import type { Limiter } from '../limiter.ts'
import { normaliseTarget } from '../path.ts'

/** What counts as one resource: what a route serves, or each path. */
export type ResourceOf = 'route' | 'path'

/** A Fastify request as Diana sees it. What no rule asks is never worked out. */
export class FastifyCall implements Call {
  readonly #request: FastifyRequest
  readonly #limiter: Limiter
  readonly #resourceOf: ResourceOf
  #path: string | undefined
  #template: string | undefined
  #knowsTemplate = false
  #ip: string | undefined
  #knowsIp = false

  constructor(request: FastifyRequest, limiter: Limiter, resourceOf: ResourceOf) {
    this.#request = request
    this.#limiter = limiter
    this.#resourceOf = resourceOf
  }

  get method(): string {
    return this.#request.method
  }

  get headers(): FastifyRequest['headers'] {
    return this.#request.headers
  }

  get path(): string {
    this.#path ??= this.#readPath()
    return this.#path
  }

  get query(): string | undefined {
    const { url } = this.#request
    const question = url.indexOf('?')
    return question < 0 ? undefined : url.slice(question + 1)
  }

  get ip(): string | undefined {
    if (!this.#knowsIp) {
      const { socket, headers } = this.#request
      this.#ip = this.#limiter.addressOf(socket.remoteAddress, headers['x-forwarded-for'])
      this.#knowsIp = true
    }
    return this.#ip
  }

  get host(): string | undefined {
    const { headers } = this.#request
    // HTTP/2 has no Host
    return headers.host ?? headers[':authority']?.toString()
  }

  get resource(): string | undefined {
    const template = this.#route()
    // what a wildcard serves is many things
    return template?.includes('*') ? undefined : template
  }

  /** The template of the route that serves the request; undefined where none does. */
  #route(): string | undefined {
    if (!this.#knowsTemplate) {
      this.#template = this.#resourceOf === 'path' ? undefined : this.#request.routeOptions.url
      this.#knowsTemplate = true
    }
    return this.#template
  }

  /** However a caller spells the path of a route without parameters, it is the route's. */
  #readPath(): string {
    const template = this.#route()
    if (template !== undefined && !template.includes(':') && !template.includes('*')) return template
    const { url } = this.#request
    return normaliseTarget(url)?.path ?? template ?? withoutQuery(url)
  }
}

function withoutQuery(url: string): string {
  const question = url.indexOf('?')
  return question < 0 ? url : url.slice(0, question)
}
