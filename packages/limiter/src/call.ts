/** The part of a request that Diana may ask for. Filters make one; anything else may be added under `attributes`. */
export interface Call {
  readonly method: string
  /** The path alone, without the query. Where servers may read it in several ways, rules about each of them hold. */
  readonly path: string
  /** Another path that the target may be cut into: rules about either hold. */
  readonly otherPath?: string | undefined
  /** Paths that the call had before a middleware rewrote it: rules about each of them hold. */
  readonly earlierPaths?: readonly string[] | undefined
  /** True if the path is matched without regard to case. */
  readonly caseInsensitive?: boolean | undefined
  /** The raw query, without the question mark. */
  readonly query?: string | undefined
  /** The caller's address, already chosen among proxies. */
  readonly ip?: string | undefined
  readonly host?: string | undefined
  /** Names in lower case, as Node gives them. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  /** The certificate by which the caller has identified itself, verified by the server. */
  readonly clientCertificate?: ClientCertificate | undefined
  /** True if the call came from a proxy that is trusted, whose headers are believed. */
  readonly trustedPeer?: boolean | undefined
  /** The framework's name for the called resource (a route template); the path if there is none. */
  readonly resource?: string | undefined
  /** Values the application knows: an account, a plan, a tenant. They win over what `identify` finds. */
  readonly attributes?: Readonly<Record<string, string | undefined>> | undefined
  /** The body as far as it is known, for costs that are read from it. */
  readonly body?: CallBody | undefined
}

/** The names of the holder of a verified client certificate. Several names of one kind are joined by a comma and a space. */
export interface ClientCertificate {
  /** The distinguished name, as in `CN=billing, O=Example`. */
  readonly subject?: string | undefined
  readonly cn?: string | undefined
  /** Alternative names by their kind. */
  readonly uri?: string | undefined
  readonly dns?: string | undefined
  readonly email?: string | undefined
  /** SHA-256 of the certificate in lower-case hexadecimal digits. */
  readonly fingerprint: string
}

/** The body of a request as far as it is known. */
export interface CallBody {
  /** Its size; undefined if that is not known before all of it has come. */
  readonly bytes: number | undefined
  /**
   * Returns the number at a path such as `['usage', 'total']`; undefined if there is none; NaN if that cannot be known, or is no
   * number.
   */
  number(path: readonly string[]): number | undefined
  /** Returns more about the fields at several paths, read at once; left out, `number` says all. */
  fields?(paths: readonly (readonly string[])[]): readonly BodyField[]
}

/** A field of a body that services may read in several ways, as far as it is known. */
export interface BodyField {
  /** The largest number that a service may read, as `number` of the body. */
  readonly number: number | undefined
  /** True if a service may find no number there, since it is null or 0, spelled in another case, or there twice. */
  readonly mayLack: boolean
  /** The number of items of the list there that are no numbers: 0 if there is none, NaN if that cannot be known. */
  readonly items: number
}

/** Marks calls that always have a method and a path, and compute them only if a rule needs them. */
export const lazy: unique symbol = Symbol('diana.lazy')
