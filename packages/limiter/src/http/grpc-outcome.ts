const grpcType = /^application\/grpc(?:-web(?:-text)?)?(?:\+[\w.-]+)?(?=;|\s|$)/i

/** The statuses of HTTP that those of gRPC stand for, from 0 to 16 (google.rpc.Code). */
const statuses = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401] as const

const UNKNOWN = 500

/** Whether the content type of an answer is that of gRPC, whose answers all have the status 200. */
export function isGrpcAnswer(contentType: string | undefined): boolean {
  return contentType !== undefined && grpcType.test(contentType.trim())
}

/** The status of HTTP that a `grpc-status` stands for. An answer without one, or with one that nobody knows, has failed. */
export function statusOfGrpc(grpcStatus: string | undefined): number {
  if (grpcStatus === undefined || !/^\s*\d{1,2}\s*$/.test(grpcStatus)) return UNKNOWN
  return statuses[Number(grpcStatus)] ?? UNKNOWN
}
