export interface LimitedServer {
  readonly limit: number
  readonly windowMs: number
}

export const servers: Readonly<Record<string, LimitedServer>>
