import { resolve } from 'node:path'
import { fetchText, fileFault, type KeySet, readKeySet, readRegularFile } from 'diana-limiter/gateway'
import { Refusal } from '../../http/refusal.ts'
import { keyUrlFault, type OidcSettings } from '../../settings/identity-settings.ts'

export interface IssuerKeysOptions {
  /** Reads the keys; rejects if they cannot be read. */
  readonly load: () => Promise<KeySet>
  /** Gets the reason when keys cannot be read, once until they can be read again. */
  readonly onTrouble: (trouble: string) => void
  readonly now?: (() => number) | undefined
}

const refreshMs = 10 * 60_000
const keepMs = 24 * 60 * 60_000
const retryMs = 10_000
/** Keys that are not known are looked for this often: anyone can name one. */
const unknownMs = 30_000

/**
 * The keys of an issuer, read in the background. They stay in use for a day while the issuer cannot be reached. Only a
 * request whose token has an unknown key waits for them, for a bounded time.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  readonly #now: () => number
  #keys: KeySet | undefined
  #readAt = 0
  #triedAt = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | undefined
  #trouble: string | undefined

  constructor(options: IssuerKeysOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Returns the keys by which a token is verified that names this key, or none. */
  async find(kid: string | undefined): Promise<KeySet> {
    const now = this.#now()
    if (now - this.#readAt > keepMs) this.#keys = undefined
    if (this.#keys === undefined) {
      if (this.#loading !== undefined || now - this.#triedAt >= retryMs) await this.read()
    } else if (kid !== undefined && !this.#keys.has(kid)) {
      if (this.#loading !== undefined || now - this.#triedAt >= unknownMs) await this.read()
    } else if (now - this.#readAt >= refreshMs && now - this.#triedAt >= unknownMs) void this.read()
    if (this.#keys !== undefined) return this.#keys
    throw new Refusal(
      503,
      `The keys of the issuer cannot be read (${this.#trouble}), so no token of it can be verified. Try again, or use the admin token.`,
      {},
      { 'Retry-After': String(retryMs / 1000) },
    )
  }

  /** Reads the keys, once at a time; never rejects. */
  read(): Promise<void> {
    this.#triedAt = this.#now()
    this.#loading ??= this.#read().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #read(): Promise<void> {
    try {
      this.#keys = await this.#options.load()
      this.#readAt = this.#now()
      this.#trouble = undefined
    } catch (error) {
      const trouble = reasonOf(error)
      if (this.#trouble === undefined) this.#options.onTrouble(`the keys of the issuer cannot be read: ${trouble}`)
      this.#trouble = trouble
    }
  }
}

const fetchMs = 5000
const mostBytes = 256 * 1024

/** Reads the keys that the settings name; nothing in a token can choose another place. */
export function loaderOf({ issuer, jwks }: OidcSettings, folder: string, signal: AbortSignal): () => Promise<KeySet> {
  const get = async (url: string): Promise<string> => {
    const { status, text } = await fetchText(new URL(url), signal, { timeoutMs: fetchMs, mostBytes })
    if (status !== 200) throw new Error(`${url} answered HTTP ${status}`)
    return text
  }
  if (jwks !== undefined && /^https?:/i.test(jwks)) return async () => readKeySet(await get(jwks))
  if (jwks !== undefined) {
    const path = resolve(folder, jwks)
    return async () => readKeySet((await readRegularFile(path, { mostBytes })).toString())
  }
  return async () => {
    const found = await get(`${issuer!.replace(/\/$/, '')}/.well-known/openid-configuration`)
    return readKeySet(await get(keysAddressIn(found, issuer!)))
  }
}

/** Checks that the document is that of the issuer (OpenID Connect Discovery, section 4.3). */
function keysAddressIn(text: string, issuer: string): string {
  const { issuer: named, jwks_uri: address } = JSON.parse(text) as Record<string, unknown>
  if (named !== issuer)
    throw new Error('the issuer names itself otherwise: write gateway.admin.identity.oidc.issuer alike')
  if (typeof address !== 'string') throw new Error('the issuer does not say where its keys are: set jwks')
  const fault = keyUrlFault(address)
  if (fault !== undefined) throw new Error(`the address of its keys ${fault}`)
  // an issuer elsewhere must not lead this process to a server of this machine
  const { protocol, origin } = new URL(address)
  if (protocol === 'http:' && origin !== new URL(issuer).origin)
    throw new Error('the address of its keys begins with http:// and is not that of the issuer: set jwks')
  return address
}

function reasonOf(error: unknown): string {
  const { cause } = error as { readonly cause?: unknown }
  return String(fileFault(cause instanceof Error ? cause : error))
    .replace(/\p{C}/gu, ' ')
    .slice(0, 200)
}
