import type { CallReply } from '../calls/call.ts'
import type { BulkQueue } from '../connections/bulk-queue.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { GatewaySettings } from '../settings/gateway-settings.ts'
import type { ResponseSink } from './answers/response-sink.ts'
import type { Trust } from './trust.ts'

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
