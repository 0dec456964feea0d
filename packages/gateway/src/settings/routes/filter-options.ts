import { countedPath } from 'diana-limiter/gateway'
import { duration, headerFault, listOf, methodFault, textOf, z } from 'diana-limiter/schema'
import { oneSpelling } from '../one-spelling.ts'
import { sizeOf } from '../values.ts'

const path = textOf(text => {
  const isPlain = /^\/[^\s?#*;\\]*$/.test(text) && oneSpelling(text) !== undefined
  return isPlain ? undefined : 'must be a plain path such as /orders'
}).transform(text => `${countedPath(oneSpelling(text)!)}/`.replace('//', '/'))

function keyHeaderFault(name: string): string | undefined {
  if (/^[a-z\d-]+$/i.test(name)) return undefined
  return headerFault(name) ?? 'never arrives, since the gateway drops such names: write letters, digits and - only'
}

const permission = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/, { error: 'must be 1 to 64 letters, digits, -, _ and dots' })
    .describe('Whose key it is; the service is told.'),
  sha256: z
    .string()
    .regex(/^[\da-f]{64}$/i, { error: 'must be the SHA-256 of the key, 64 hexadecimal digits' })
    .describe('The SHA-256 of the key: printf %s KEY | sha256sum.'),
  paths: listOf(path, { min: 1, max: 100 }).default(['/']).describe('What the key opens: paths, and all below them.'),
  methods: listOf(
    textOf(methodFault, 20).transform(name => name.toUpperCase()),
    { min: 1, max: 40 },
  )
    .default([])
    .describe('By which methods; left out, all.'),
})

/** The words of the filter `api-key`. */
export const apiKeyOptions: z.Shape = {
  header: textOf(keyHeaderFault, 128).default('x-api-key').describe('The header that carries the key.'),
  keys: z.array(permission).min(1).max(10_000).describe('The keys and what each opens.'),
}

/** The words of the filter `hmac-signature`. */
export const hmacSignatureOptions: z.Shape = {
  secrets: z
    .record(z.string().regex(/^[\w.-]{1,64}$/), z.string().min(1).max(4096))
    .refine(map => Object.keys(map).length > 0, { error: 'has no secret: name one, as in { shop: env:SHOP_SECRET }' })
    .describe('Secrets by the name that calls give: env:NAME, file:PATH, or the secret itself.'),
  window: duration.default(300_000).describe('How far a timestamp may be from now; default: 5m.'),
  body: sizeOf({ least: '1B', most: '64MiB' })
    .default(1_048_576)
    .describe('The largest body, since it is read whole; default: 1MiB.'),
  nonces: z.int().min(1).max(10_000_000).default(100_000).describe('How many calls of one secret are remembered.'),
}

/** The words of each filter that comes with the gateway, by its name. */
export const filterOptions: Readonly<Record<string, z.Shape>> = {
  'api-key': apiKeyOptions,
  'hmac-signature': hmacSignatureOptions,
}
