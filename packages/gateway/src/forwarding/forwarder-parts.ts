import type { CallReply } from '../http/call.ts'
import type { Trust } from '../http/trust.ts'
import type { BulkQueue } from '../inbound/connections/bulk-queue.ts'
import type { RouteTable } from '../services/routes/route-table.ts'
import type { GatewaySettings } from '../settings/gateway-settings.ts'
import type { ResponseSink } from './answers/response-sink.ts'

/** What a forwarder works with; routes and settings change while it runs. */
export interface ForwarderParts {
  readonly settings: GatewaySettings
  readonly routes: RouteTable
  readonly trust: Trust
  readonly bulk: BulkQueue
  outletFor(reply: CallReply): ResponseSink
  /** Whether the gateway is closing, so that connections are not kept open. */
  isClosing(): boolean
}
