package oal.stream.codec;

import java.util.Arrays;
import oal.schema.Fields;

/**
 * Flows that a batch's rows name by index (message {@code FlowDictionary}). Addresses stay where they are in the
 * batch's bytes.
 */
public final class FlowDictionary {
    public int size;
    /** The batch's bytes, which {@link #clientAddr} and {@link #serverAddr} point into. */
    public byte[] data;
    public long[] flowId = new long[64];
    public int[] clientAddr = new int[64];
    public int[] serverAddr = new int[64];
    /** Bytes of both addresses: 4 or 16. */
    public int[] addrBytes = new int[64];
    public long[] clientPort = new long[64];
    public long[] serverPort = new long[64];
    public long[] protocol = new long[64];
    public long[] stationMac = new long[64];

    private int[] serverBytes = new int[64];
    private final Wire list = new Wire();

    void clear() {
        size = 0;
    }

    void decode(Wire w) throws RefusedException {
        data = w.data;
        int ids = 0, clients = 0, servers = 0, clientPorts = 0, serverPorts = 0, protocols = 0, macs = 0;
        while (w.more()) {
            w.next();
            if (w.field > Fields.FLOWS_STATION_MAC) continue; // a later revision's field
            if (w.type != Wire.BYTES) {
                throw RefusedException.malformed("flows: field " + w.field + " has wire type " + w.type);
            }
            int bytes = w.to - w.from;
            switch (w.field) {
                case Fields.FLOWS_FLOW_ID -> {
                    if (bytes % 8 != 0) {
                        throw RefusedException.malformed("flows.flow_id is not a multiple of eight bytes");
                    }
                    flowId = room(flowId, ids + bytes / 8);
                    for (int p = w.from; p < w.to; p += 8) flowId[ids++] = w.fixed64(p);
                }
                case Fields.FLOWS_CLIENT_ADDR -> {
                    address(bytes, "client_addr");
                    clientAddr = room(clientAddr, clients + 1);
                    addrBytes = room(addrBytes, clients + 1);
                    clientAddr[clients] = w.from;
                    addrBytes[clients++] = bytes;
                }
                case Fields.FLOWS_SERVER_ADDR -> {
                    address(bytes, "server_addr");
                    serverAddr = room(serverAddr, servers + 1);
                    serverBytes = room(serverBytes, servers + 1);
                    serverAddr[servers] = w.from;
                    serverBytes[servers++] = bytes;
                }
                case Fields.FLOWS_CLIENT_PORT -> {
                    clientPort = room(clientPort, clientPorts + bytes);
                    clientPorts = varints(w, clientPort, clientPorts);
                }
                case Fields.FLOWS_SERVER_PORT -> {
                    serverPort = room(serverPort, serverPorts + bytes);
                    serverPorts = varints(w, serverPort, serverPorts);
                }
                case Fields.FLOWS_PROTOCOL -> {
                    protocol = room(protocol, protocols + bytes);
                    protocols = varints(w, protocol, protocols);
                }
                case Fields.FLOWS_STATION_MAC -> {
                    stationMac = room(stationMac, macs + bytes);
                    macs = varints(w, stationMac, macs);
                }
                default -> throw new IllegalStateException("field " + w.field);
            }
        }
        if (ids != clients || ids != servers || ids != clientPorts || ids != serverPorts || ids != protocols
                || ids != macs) {
            throw RefusedException.malformed("flow dictionary's columns differ in length");
        }
        for (int i = 0; i < ids; i++) {
            if (over(clientPort[i], 0xFFFF) || over(serverPort[i], 0xFFFF) || over(protocol[i], 0xFF)
                    || over(stationMac[i], (1L << 48) - 1)) {
                throw RefusedException.valueRange("flow dictionary, entry " + i);
            }
            if (addrBytes[i] != serverBytes[i]) {
                throw RefusedException.malformed("flow with addresses of different families");
            }
        }
        size = ids;
    }

    private int varints(Wire w, long[] out, int n) throws RefusedException {
        list.reset(w.data, w.from, w.to);
        while (list.more()) out[n++] = list.varint();
        return n;
    }

    private static void address(int bytes, String what) throws RefusedException {
        if (bytes != 4 && bytes != 16) throw RefusedException.malformed("flows." + what + " of " + bytes + " bytes");
    }

    private static boolean over(long value, long max) {
        return value < 0 || value > max;
    }

    private static long[] room(long[] a, int n) {
        return n <= a.length ? a : Arrays.copyOf(a, Math.max(n, a.length * 2));
    }

    private static int[] room(int[] a, int n) {
        return n <= a.length ? a : Arrays.copyOf(a, Math.max(n, a.length * 2));
    }
}
