import type { Call } from '../call.ts'

/** Dimensions that exist without `identify`: the application gives them as attributes. */
export const APPLICATION_DIMENSIONS: readonly string[] = ['account', 'device']

/** One way to distinguish callers. Rules name it `name`, or `name:argument` if it needs an argument. */
export interface Dimension {
  readonly name: string
  readonly argument: 'none' | 'required'
  /** The field of a call that holds its value, if it reads a field that every recorded call has. */
  readonly field?: 'ip' | 'method' | 'host' | 'resource' | undefined
  /** The arguments that it knows; left out, any. */
  readonly arguments?: readonly string[] | undefined
  /** Returns the value of the call; undefined and blank text count as absent. It must not throw. */
  read(call: Call, argument: string): string | undefined
  /** Returns a test whether services could read another value than `read` does: a call that brings two is refused with 400. */
  ambiguityOf?(argument: string): (call: Call) => boolean
  /** Returns `read` with its argument bound, for speed; it must return the same. */
  readerOf?(argument: string): (call: Call) => string | undefined
  /** The top-level option of a document that it needs. */
  readonly needs?: string | undefined
  /** This dimension with the settings of a document, if it has any. */
  set?(settings: DimensionSettings): Dimension
}

/** Options of a rule document that configure dimensions. */
export interface DimensionSettings {
  /** The number of bits of an IPv6 address that identify a caller. */
  readonly ipv6Prefix: number
  readonly jwt?: JwtSettings | undefined
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
}

/** The verification of tokens. */
export interface JwtSettings {
  /** Secrets, public keys in PEM, JWK or JWKS; or where they are: `env:NAME`, `file:PATH`. */
  readonly keys: readonly string[]
  /** True if a proxy in front has verified every token. */
  readonly verified: boolean
  readonly issuer?: string | undefined
  readonly audience?: readonly string[] | undefined
}
