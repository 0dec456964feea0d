/** The statuses of gRPC that the gateway answers with. */
export const grpcStatus = {
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const

const byHttp: Readonly<Record<number, number>> = {
  400: grpcStatus.internal,
  401: grpcStatus.unauthenticated,
  403: grpcStatus.permissionDenied,
  404: grpcStatus.unimplemented,
  405: grpcStatus.unimplemented,
  408: grpcStatus.deadlineExceeded,
  413: grpcStatus.resourceExhausted,
  417: grpcStatus.internal,
  429: grpcStatus.resourceExhausted,
  431: grpcStatus.resourceExhausted,
  500: grpcStatus.internal,
  501: grpcStatus.unimplemented,
  502: grpcStatus.unavailable,
  503: grpcStatus.unavailable,
  504: grpcStatus.deadlineExceeded,
}

/** Returns the gRPC status of an answer of the gateway. */
export function grpcStatusFor(httpStatus: number): number {
  return byHttp[httpStatus] ?? grpcStatus.unknown
}

/** Writes text as a `grpc-message` may hold it: ASCII, with everything else percent-encoded. */
export function grpcMessage(text: string): string {
  return [...Buffer.from(text.slice(0, 1024))]
    .map(byte =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('')
}
