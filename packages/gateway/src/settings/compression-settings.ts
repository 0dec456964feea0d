import { listOf, textOf, z } from 'diana-limiter/schema'
import { sizeOf } from './values.ts'

/** A way to compress a body, by its name in Content-Encoding. */
export type Encoding = 'br' | 'gzip'

/** The answers of services that are compressed, and how. */
export interface CompressionSettings {
  /** The encodings; the first one is taken if a caller likes several as much. */
  readonly encodings: readonly Encoding[]
  /** Content types such as `application/json`; `*` stands for any part of one. */
  readonly types: readonly string[]
  /** Answers that say they are shorter are left as they are. */
  readonly minBytes: number
}

const usual: CompressionSettings = {
  encodings: ['br', 'gzip'],
  types: [
    'text/*',
    'application/json',
    'application/*+json',
    'application/x-ndjson',
    'application/javascript',
    'application/xml',
    'application/*+xml',
    'application/wasm',
    'image/svg+xml',
    'image/x-icon',
    'font/ttf',
    'font/otf',
  ],
  minBytes: 1024,
}

function typeFault(text: string): string | undefined {
  return /^[\w*.+-]+\/[\w*.+-]+$/.test(text)
    ? undefined
    : 'is not a content type: write one such as application/json or text/*, without parameters'
}

const words = z
  .strictObject({
    encodings: listOf(z.enum(['br', 'gzip']), { min: 1, max: 2 })
      .default(usual.encodings as Encoding[])
      .describe('How, the best first; default: [br, gzip].'),
    types: listOf(
      textOf(typeFault, 128).transform(type => type.toLowerCase()),
      { min: 1, max: 100 },
    )
      .default(usual.types as string[])
      .describe('Content types, such as application/json or text/*; default: text, JSON, JavaScript, XML, SVG, fonts.'),
    minSize: sizeOf({ least: '0B', most: '1GiB' })
      .default(usual.minBytes)
      .describe('Shorter answers are left as they are; default: 1KiB.'),
  })
  .transform(({ minSize, ...rest }): CompressionSettings => ({ ...rest, minBytes: minSize }))

/** `false` for no compression, which a route may say where the gateway says otherwise. */
export const compressionSchema: z.Schema<CompressionSettings | false> = z.union([
  z.boolean().transform(isOn => isOn && usual),
  words,
])
