import { textOf, z } from 'diana-limiter/schema'
import { headersToSet } from './routes/header-settings.ts'

/** The collector that spans are sent to, and the share of calls that have them. */
export interface TracingSettings {
  readonly endpoint: string
  /** The share of traces that are recorded, of those that no trusted proxy has decided about. */
  readonly sample: number
  readonly serviceName: string
  readonly headers: Readonly<Record<string, string>>
}

function endpointFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return undefined
  return 'is not the address of a collector: write one such as http://127.0.0.1:4318'
}

export const tracingSchema: z.Schema<TracingSettings> = z.strictObject({
  endpoint: textOf(endpointFault, 2048).describe('A collector that takes OTLP over HTTP: http://127.0.0.1:4318.'),
  sample: z.number().min(0).max(1).default(0.01).describe('The share of calls that are recorded; default: 0.01.'),
  serviceName: z.string().min(1).max(255).default('diana-gateway').describe('service.name of the spans.'),
  headers: headersToSet
    .default({})
    .describe('Headers for the collector, such as an API key; env:NAME and file:PATH name where a value is.'),
})
