/** Sends one command to Redis: all that Diana needs of a client. */
export type SendCommand = (command: readonly string[]) => Promise<unknown>
