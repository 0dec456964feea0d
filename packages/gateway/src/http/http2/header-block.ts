/**
 * How large a block of headers may be that is sent. Limits of its own bound what is read, and thus what there is to send; beyond
 * Node's default of 64 KiB, Node would reset the stream and end the connection with all its other calls.
 */
export const maxSentHeaderBytes: number = 2 ** 26
