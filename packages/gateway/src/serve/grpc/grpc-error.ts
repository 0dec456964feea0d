import { grpcStatus } from '../../http/grpc/grpc-status.ts'

/** The statuses that the decision server answers with, besides those of the gateway. */
export const status: typeof grpcStatus & { readonly ok: 0; readonly invalidArgument: 3 } = {
  ...grpcStatus,
  ok: 0,
  invalidArgument: 3,
}

/** Ends a call with a status and a sentence. */
export class GrpcError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}
