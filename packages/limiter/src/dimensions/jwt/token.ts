/** A JSON Web Token in compact form, taken apart; nothing of it is true before its signature is verified. */
export interface Token {
  readonly alg: string
  readonly kid: string | undefined
  readonly claims: Readonly<Record<string, unknown>>
  /** The part that is signed. */
  readonly signed: string
  readonly signature: Buffer
}

const SHAPE = /^([\w-]+)\.([\w-]+)\.([\w-]*)$/

/** Reads a token; undefined if the text is not one, or has critical header parameters that are not supported. */
export function readToken(text: string): Token | undefined {
  const [, head, body, signature] = SHAPE.exec(text) ?? []
  const header = readObject(head)
  const claims = readObject(body)
  if (header === undefined || claims === undefined) return undefined
  const { alg, kid, crit } = header
  // RFC 7515, section 4.1.11: none of these is understood here
  if (typeof alg !== 'string' || crit !== undefined) return undefined
  return {
    alg,
    kid: typeof kid === 'string' ? kid : undefined,
    claims,
    signed: `${head}.${body}`,
    signature: Buffer.from(signature ?? '', 'base64url'),
  }
}

function readObject(part: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part ?? '', 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
