import { type Call, lazy } from '../call.ts'
import { valueNow } from '../common/sync-function.ts'
import { warnOnce } from '../common/warn-once.ts'
import { parseNetwork } from '../http/ip-address.ts'
import type { RuleDocument } from '../rules/rule.ts'
import type { Filter } from './filter.ts'
import { pathBehindHost, queryOf, spelledPath } from './frameworks/spelled-path.ts'
import { report } from './report.ts'

/** The document that was checked last; rules change rarely. */
let knownDocument: Filter<never, never>['trust']['document'] | undefined

/** A request of any framework as a call. Fields that no rule needs are never computed. */
export class RequestCall<Request> implements Call {
  attributes: Call['attributes']
  body: Call['body']
  readonly #filter: Filter<Request, never>
  /** The framework's own. */
  readonly request: Request
  #headers: Call['headers']
  #path: string | undefined
  #ip: string | undefined
  #knowsIp = false

  constructor(filter: Filter<Request, never>, request: Request) {
    this.#filter = filter
    this.request = request
    this.attributes = undefined
    this.body = undefined
  }

  get method(): string {
    return this.#filter.framework.method(this.request)
  }

  get headers(): Call['headers'] {
    this.#headers ??= this.#filter.framework.headers(this.request)
    return this.#headers
  }

  get path(): string {
    this.#path ??= this.#filter.framework.path(this.request)
    return this.#path
  }

  get otherPath(): string | undefined {
    const { framework } = this.#filter
    const path = pathBehindHost(framework.target(this.request))
    return path === undefined ? undefined : spelledBase(framework.base?.(this.request)) + path
  }

  get earlierPaths(): readonly string[] | undefined {
    const { framework } = this.#filter
    const original = framework.originalTarget?.(this.request)
    if (original === undefined) return undefined
    const target = framework.target(this.request)
    const base = framework.base?.(this.request) ?? ''
    if (original === target && base === '') return undefined
    const earlier = spelledPath(original)
    if (earlier === this.path) return undefined
    // a base that the call did not arrive with may be out of date
    return base === '' || earlier.endsWith(this.path) ? [earlier] : [earlier, spelledPath(target)]
  }

  get caseInsensitive(): boolean {
    const { options, framework } = this.#filter
    return options.caseSensitive === undefined ? framework.caseInsensitive(this.request) : !options.caseSensitive
  }

  get resource(): string | undefined {
    const { options, framework } = this.#filter
    const template = options.resource === 'path' ? undefined : framework.template(this.request)
    // what a wildcard serves is many things
    return template?.includes('*') ? undefined : template
  }

  get query(): string | undefined {
    const { framework } = this.#filter
    const query = queryOf(framework.target(this.request))
    if (query !== undefined || framework.originalTarget === undefined) return query
    return queryOf(framework.originalTarget(this.request))
  }

  get host(): string | undefined {
    const headers = this.headers
    // HTTP/2 has no Host
    const host = headers?.host ?? headers?.[':authority']
    return typeof host === 'string' ? host : host?.[0]
  }

  get clientCertificate(): Call['clientCertificate'] {
    return this.#filter.framework.clientCertificate?.(this.request)
  }

  get trustedPeer(): boolean {
    const { trust } = this.#filter
    return trust.isTrusted?.(this.#peer()) ?? false
  }

  get ip(): string | undefined {
    if (!this.#knowsIp) {
      const { trust } = this.#filter
      const headers = this.headers
      if (trust.document !== knownDocument) {
        knownDocument = trust.document
        warnOfTrust(knownDocument)
      }
      if (trust.document.trustProxy === 0 && isForwarded(headers)) warnOfUntrustedProxy()
      this.#ip = trust.addressOf(this.#peer(), headers?.[trust.document.forwardedBy])
      this.#knowsIp = true
    }
    return this.#ip
  }

  /** Reads the address; a function of the application that throws must not interrupt the decision: the call then has no address. */
  #peer(): string | undefined {
    const { framework } = this.#filter
    try {
      const peer: unknown = framework.peer(this.request)
      if (typeof peer === 'string') return peer
      // a promise is reported
      if (peer !== undefined) valueNow(peer, 'peer')
      return undefined
    } catch (error) {
      report(error, this.request, this.#filter, 'peer')
      return undefined
    }
  }
}

function spelledBase(base = ''): string {
  return base === '' ? '' : spelledPath(base)
}

function isForwarded(headers: Call['headers']): boolean {
  return headers?.['x-forwarded-for'] !== undefined || headers?.forwarded !== undefined
}

Object.defineProperty(RequestCall.prototype, lazy, { value: true })

/** Warns if a document trusts every address as a proxy: each caller could then choose their own address. */
export function warnOfTrust({ trustProxy }: Pick<RuleDocument, 'trustProxy'>): void {
  if (typeof trustProxy !== 'number' && trustProxy.some(isEveryAddress)) warnOnce('DIANA_TRUSTS_EVERYONE')
}

/** Warns that a proxy names the caller, and no proxy is trusted. */
export function warnOfUntrustedProxy(): void {
  warnOnce('DIANA_PROXY_NOT_TRUSTED')
}

/** True if a network holds half of all addresses or more, in either family. */
function isEveryAddress(text: string): boolean {
  const length = parseNetwork(text)?.length ?? 128
  return length <= 3 || length === 96 || length === 97
}
