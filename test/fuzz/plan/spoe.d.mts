/** Returns the first frame of HAProxy. */
export function spoeHello(): string
