import java.util.concurrent.atomic.LongAdder;

import org.apache.jmeter.control.LoopController;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.engine.util.NoThreadClone;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleListener;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestPlan;
import org.apache.jmeter.threads.ThreadGroup;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.collections.HashTree;
import org.apache.jorphan.collections.ListedHashTree;
import org.apache.jorphan.logging.LoggingManager;

/**
 * A test plan of JMeter's: a number of threads that each ask for a page, over a connection for each request, without a pause.
 *
 * It is made by JMeter's classes and not read from a file, because Debian's JMeter 2.13 cannot read one: its xstream refuses
 * the types of a plan.
 */
public class Load {
    private static final LongAdder GOOD = new LongAdder();
    private static final LongAdder BAD = new LongAdder();
    private static volatile boolean counts;

    /** Counts answers; one for all threads. */
    public static class Counter extends AbstractTestElement implements SampleListener, NoThreadClone {
        public void sampleOccurred(SampleEvent event) {
            if (!event.getResult().isSuccessful()) {
                BAD.increment();
            } else if (counts) {
                GOOD.increment();
            }
        }

        public void sampleStarted(SampleEvent event) {}

        public void sampleStopped(SampleEvent event) {}
    }

    /** Arguments: JMeter's directory, port, clients, milliseconds that do not count, milliseconds that do. */
    public static void main(String[] arguments) throws Exception {
        String home = arguments[0];
        JMeterUtils.setJMeterHome(home);
        JMeterUtils.loadJMeterProperties(home + "/bin/jmeter.properties");
        LoggingManager.setPriority("FATAL_ERROR");
        JMeterUtils.initLocale();

        StandardJMeterEngine engine = new StandardJMeterEngine();
        engine.configure(plan(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2])));
        engine.runTest();
        Thread.sleep(Long.parseLong(arguments[3]));
        long begin = System.nanoTime();
        counts = true;
        Thread.sleep(Long.parseLong(arguments[4]));
        counts = false;
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.println("failed: " + BAD.sum());
        System.out.println("requests/s: " + GOOD.sum() / seconds);
        // Its threads go on for ever.
        Runtime.getRuntime().halt(0);
    }

    private static HashTree plan(int port, int clients) {
        HTTPSamplerProxy page = new HTTPSamplerProxy("HttpClient4");
        page.setDomain("127.0.0.1");
        page.setPort(port);
        page.setPath("/loop.php");
        page.setMethod("GET");
        page.setUseKeepAlive(false);
        LoopController loop = new LoopController();
        loop.setLoops(LoopController.INFINITE_LOOP_COUNT);
        loop.setContinueForever(true);
        loop.initialize();
        ThreadGroup group = new ThreadGroup();
        group.setNumThreads(clients);
        group.setRampUp(0);
        group.setSamplerController(loop);

        HashTree all = new ListedHashTree();
        HashTree ofGroup = all.add(new TestPlan("load")).add(group);
        ofGroup.add(page);
        ofGroup.add(new Counter());
        return all;
    }
}
