/** The rights of someone: everything, or to read without the documents, which may hold secrets. */
export type Role = 'operator' | 'viewer'

/** A person or program that makes a request of the admin API, and its rights. */
export interface Identity {
  readonly role: Role
  /** For the list of changes: the name of the user, or which token was given. */
  readonly who: string
  /** Left out if no user is named: a token has no name. */
  readonly user?: string | undefined
  /** The way in which they were recognized; `open` if the gateway asks for nothing. */
  readonly via: 'open' | 'token' | 'proxy' | 'oidc'
  /** The time when it ends, in milliseconds since 1970; left out if it does not. */
  readonly endsAt?: number | undefined
}

/** A user as a proxy or a token names them. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
}

/** The longest name of a user or a group. */
export const longestName = 256
/** More groups than these are not read. */
export const mostGroups = 500
